"""Take the JavaScript that draws the charts of an HTML report from its packages, into gpubench/report/html/assets/.

    python scripts/report_assets.py FOLDER

FOLDER holds the packages as `npm pack vega@6.4.0 vega-interpreter@2.3.2` writes them. Needed only to move to another
version: what it writes is committed. A package that is not the one named here, byte for byte, is refused.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

ASSETS = Path(__file__).resolve().parents[1] / "gpubench" / "report" / "html" / "assets"


@dataclass(frozen=True)
class Package:
    """A published package, and the one file we take of it. `sha256` is that of the file."""

    name: str
    version: str
    licence: str
    file: str
    sha256: str

    def read(self, folder: Path) -> tuple[str, str]:
        """The file, and the package's licence."""
        with tarfile.open(folder / f"{self.name}-{self.version}.tgz") as archive:
            text, licence = (_member(archive, f"package/{name}") for name in (self.file, "LICENSE"))
        found = hashlib.sha256(text).hexdigest()
        if found != self.sha256:
            sys.exit(f"{self.name} {self.version}: {self.file} has the SHA-256 {found}, not {self.sha256}")
        return text.decode(), licence.decode()


VEGA = Package(
    "vega", "6.4.0", "BSD-3-Clause", "build/vega.min.js",
    "8f6a3587cf8d4f42c7e08120e3eb05d067e746d554e39d2dcf52acc0bd5ba28f",
)  # fmt: skip
INTERPRETER = Package(
    "vega-interpreter", "2.3.2", "BSD-3-Clause", "build/vega-interpreter.js",
    "c0bdb735a63f9276f136e8d90d7fdf5d8e9df8031eb069048fc9975c876fd7f9",
)  # fmt: skip

IMPORT = "import { ascending, isString, DisallowedObjectProperties } from 'vega-util';"
EXPORT = "export { expression as expressionInterpreter };"
"""The interpreter is a module; Vega is a script that holds all of vega-util. So the one becomes part of the other."""


def main() -> None:
    """Read, check, join, write."""
    if len(sys.argv) != 2:
        sys.exit((__doc__ or "").split("\n\n")[1].strip())
    folder = Path(sys.argv[1])
    (vega, licence), (interpreter, same) = VEGA.read(folder), INTERPRETER.read(folder)
    if interpreter.count(IMPORT) != 1 or interpreter.count(EXPORT) != 1:
        sys.exit("vega-interpreter imports or exports something else than this script knows")
    inner = interpreter.replace(IMPORT, "const { ascending, isString, DisallowedObjectProperties } = vega;")
    inner = inner.partition(EXPORT)[0] + "vega.expressionInterpreter = expression;\n"
    text = f"{vega.partition('//# sourceMappingURL')[0].rstrip()}\n(function () {{\n'use strict';\n{inner}}})();\n"
    ASSETS.mkdir(exist_ok=True)
    (ASSETS / "vega.js.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    (ASSETS / "vega.LICENSE").write_text(licence if licence == same else f"{licence}\n{same}")
    packages = [vars(package) for package in (VEGA, INTERPRETER)]
    about = {"sha256": hashlib.sha256(text.encode()).hexdigest(), "packages": packages}
    (ASSETS / "vega.json").write_text(json.dumps(about, indent=1) + "\n")
    print(f"{len(text):,} bytes, {(ASSETS / 'vega.js.gz').stat().st_size:,} compressed")


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    if file is None:
        sys.exit(f"{archive.name}: no {name}")
    return file.read()


if __name__ == "__main__":
    main()
