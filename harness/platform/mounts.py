"""Reports on which kind of file system a folder lies, by the kernel's own list of mounts."""

import re
from pathlib import Path

MOUNTS = Path("/proc/mounts")

#: Other machines write to these, too, and a lock on them may hold on one machine only.
_NETWORK = re.compile(
    r"nfs\d?|cifs|smb\d?|smbfs|ncpfs|afs|ceph|lustre|gpfs|beegfs|glusterfs|ocfs2|gfs2|davfs|"
    r"fuse\.(sshfs|s3fs|gcsfuse|rclone|glusterfs|ceph-fuse|blobfuse2?|juicefs|goofys|mount-s3)"
)


def file_system_of(folder: Path, mounts: Path = MOUNTS) -> str | None:
    """Return the type of the file system that a folder is on; nothing if it is unknown."""
    try:
        lines = [line.split() for line in mounts.read_text().splitlines()]
    except OSError:
        return None
    place, found, longest = folder.resolve(), None, -1
    for fields in lines:
        if len(fields) < 3:
            continue
        mounted = Path(_unescaped(fields[1]))
        # A later mount at the same place covers the earlier one.
        if place.is_relative_to(mounted) and len(mounted.parts) >= longest:
            found, longest = fields[2], len(mounted.parts)
    return found


def is_network(file_system: str | None) -> bool:
    """Return whether a type of file system is a network drive."""
    return file_system is not None and _NETWORK.fullmatch(file_system) is not None


def network_warning(folder: Path, mounts: Path = MOUNTS) -> str | None:
    """Report that a state directory is on a network drive; nothing when it is not."""
    kind = file_system_of(folder, mounts)
    if not is_network(kind):
        return None
    return (
        f"the state directory {folder} is on a network drive ({kind}), where a second machine may "
        "tick beside this one: move it to a local disk and set HEARTBEAT_HOME to it"
    )


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found.group(1), 8)), text)
