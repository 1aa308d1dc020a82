"""backend.py - makes the wheel, for pip: PEP 517 without a package to fetch.

    pip wheel python/ [--config-settings libraries=FOLDER]

Where the libraries are built (build/, or the folder that is named) they are in
the wheel, which is then for this platform alone; without them it is for any,
and looks for them where it is used. They are linked to Debian's packages
(`dpkg -I amphora_*.deb` names them), which a wheel cannot bring.
"""
import base64
import hashlib
import os
import sysconfig
import tarfile
import tomllib
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARIES = {"amphora": "libamphora.so.1",
             "amphora_planner": "libamphora-planner.so.1"}
DATE = (1980, 1, 1, 0, 0, 0)  # the same sources, the same bytes


def project():
    with open(os.path.join(HERE, "pyproject.toml"), "rb") as file:
        return tomllib.load(file)["project"]


def package_files():
    for package in sorted(LIBRARIES):
        for name in sorted(os.listdir(os.path.join(HERE, package))):
            if name.endswith((".py", ".typed")):
                yield f"{package}/{name}", os.path.join(HERE, package, name)


def library_files(settings):
    folder = (settings or {}).get("libraries")
    asked = folder is not None
    folder = os.path.abspath(folder or os.path.join(HERE, "..", "build"))
    for package, name in LIBRARIES.items():
        path = os.path.join(folder, name)
        if os.path.exists(path):
            yield f"{package}/{name}", os.path.realpath(path)
        elif asked:
            raise FileNotFoundError(path)


def metadata():
    about = project()
    lines = ["Metadata-Version: 2.1", f"Name: {about['name']}",
             f"Version: {about['version']}", f"Summary: {about['description']}",
             f"License: {about['license']['text']}",
             f"Requires-Python: {about['requires-python']}"]
    for extra, needs in about["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {need}; extra == "{extra}"' for need in needs]
    return "\n".join(lines) + "\n"


class Wheel:
    def __init__(self, path):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.record = []

    def add(self, name, data):
        info = zipfile.ZipInfo(name, DATE)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = 0o644 << 16
        self.zip.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
        self.record.append(f"{name},sha256={digest.decode().rstrip('=')},"
                           f"{len(data)}\n")

    def close(self, record):
        text = "".join(self.record) + record + ",,\n"
        self.zip.writestr(zipfile.ZipInfo(record, DATE), text)
        self.zip.close()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    del metadata_directory
    about = project()
    libraries = list(library_files(config_settings))
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    tag = f"py3-none-{platform if libraries else 'any'}"
    stem = f"{about['name']}-{about['version']}"
    name = f"{stem}-{tag}.whl"
    wheel = Wheel(os.path.join(wheel_directory, name))
    for inside, path in [*package_files(), *libraries]:
        with open(path, "rb") as file:
            wheel.add(inside, file.read())
    info = f"{stem}.dist-info"
    wheel.add(f"{info}/METADATA", metadata().encode())
    pure = "false" if libraries else "true"
    wheel.add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: amphora\n"
              f"Root-Is-Purelib: {pure}\nTag: {tag}\n".encode())
    wheel.close(f"{info}/RECORD")
    return name


def build_sdist(sdist_directory, config_settings=None):
    del config_settings
    about = project()
    stem = f"{about['name']}-{about['version']}"
    with tarfile.open(os.path.join(sdist_directory, stem + ".tar.gz"), "w:gz",
                      format=tarfile.PAX_FORMAT) as tar:
        for name in ("pyproject.toml", "backend.py"):
            tar.add(os.path.join(HERE, name), f"{stem}/{name}")
        for inside, path in package_files():
            tar.add(path, f"{stem}/{inside}")
    return stem + ".tar.gz"
