"""Names what ``setup`` fetches beside the packages of ``profiles.yml``, and all checksums."""

from collections.abc import Mapping

#: The artifact names Spark's version.
ICEBERG_PACKAGE = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"

#: The SHA-256 of every jar that is fetched, by the file name that Spark's resolver gives it. A
#: version that is raised here or in ``profiles.yml`` needs its checksum here.
SHA256: Mapping[str, str] = {
    "com.fasterxml.jackson.datatype_jackson-datatype-jdk8-2.13.5.jar": (
        "e58761751fea8a00dc626aae1c5f1be38c5cfd487aeb333d933a4ab5f5a73c55"
    ),
    "commons-logging_commons-logging-1.3.0.jar": (
        "66d3c980470b99b0c511dad3dfc0ae7b265ec1fb144e96bc0253a8a175fd34d9"
    ),
    "io.delta_delta-kernel-api-4.3.1.jar": (
        "b081b818d6f5686c7d6406588af72c9f8baf6765a41ada8197364aef90a260e8"
    ),
    "io.delta_delta-kernel-defaults-4.3.1.jar": (
        "27471cca7dd7a36289af2c8d52d2babb37e9e5a13cdaaea76730120f4c72e62f"
    ),
    "io.delta_delta-kernel-unitycatalog-4.3.1.jar": (
        "a288342b7e53da34a608a1a227c8109aa4681fcb582da499ed19347f2193362b"
    ),
    "io.delta_delta-spark_4.1_2.13-4.3.1.jar": (
        "ebf35a4383f0a653c3ee3c7882c0edcac2f846be31ac61af4b96ccfaaf36c171"
    ),
    "io.delta_delta-storage-4.3.1.jar": (
        "577c12c7e371be4c041714fb48e88ad86e3c3512beea2bdaffbe7a4debf79718"
    ),
    "io.unitycatalog_unitycatalog-client-0.5.0.jar": (
        "9de6812122b411e74ee06c831dac5ccd5f87d69002c29170a37a8bce5e503615"
    ),
    "io.unitycatalog_unitycatalog-hadoop-0.5.0.jar": (
        "baca7b2928afe2a1b1789b423ab817d5d4165218999a10ebeab4a8712683beb5"
    ),
    "javax.annotation_javax.annotation-api-1.3.2.jar": (
        "e04ba5195bcd555dc95650f7cc614d151e4bcd52d29a10b8aa2197f3ab89ab9b"
    ),
    "org.apache.iceberg_iceberg-spark-runtime-4.1_2.13-1.12.0.jar": (
        "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82"
    ),
    "org.roaringbitmap_shims-0.9.25.jar": (
        "0b82ed6cb1caf0706304b42358d568eb6faf190eadea7f2b2d365cb63156b40d"
    ),
}
