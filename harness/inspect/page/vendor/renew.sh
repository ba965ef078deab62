#!/usr/bin/env bash
# Bundles the chart library from the package registry of npm, and notes its version and digest; it
# needs Node.js. `make charts` calls it: review the difference, look at the page, commit.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
echarts=6.1.0 esbuild=0.28.2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
npm install --silent --ignore-scripts --no-audit --no-fund --prefix "$work" "echarts@$echarts" "esbuild@$esbuild"
cp entry.js "$work/entry.js"
"$work/node_modules/.bin/esbuild" "$work/entry.js" --bundle --minify --format=iife --global-name=echarts \
    --target=es2020 --charset=ascii --legal-comments=none --define:process.env.NODE_ENV='"production"' \
    --log-level=warning --outfile=echarts.min.js
{
    for package in echarts zrender tslib; do
        folder="$work/node_modules/$package"
        printf '=== %s %s ===\n\n' "$package" "$(node -p "require('$folder/package.json').version")"
        for file in LICENSE LICENSE.txt NOTICE; do
            if [ -f "$folder/$file" ]; then cat "$folder/$file"; printf '\n\n'; fi
        done
    done
} >licences.txt
node -e '
    const { createHash } = require("crypto"), { readFileSync, writeFileSync } = require("fs");
    const of = (name) => require(`${process.argv[1]}/node_modules/${name}/package.json`);
    const sha256 = (file) => createHash("sha256").update(readFileSync(file)).digest("hex");
    const packages = ["echarts", "zrender", "tslib"].map((name) => (
        { name, version: of(name).version, licence: of(name).license, from: "npm" }));
    const files = { "echarts.min.js": sha256("echarts.min.js"), "licences.txt": sha256("licences.txt") };
    writeFileSync("vendor.json", JSON.stringify({ packages, bundler: `esbuild ${of("esbuild").version}`, files }, null, 2) + "\n");
' "$work"
