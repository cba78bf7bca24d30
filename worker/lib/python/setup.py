"""pyproject.toml says the rest. Only what compiles needs libabdada: an sdist is made without it."""
import sys

from setuptools import setup

COMPILING = {"bdist_wheel", "build", "build_ext", "develop", "editable_wheel", "install"}

setup(cffi_modules=["abdada_build.py:ffi"] if COMPILING & set(sys.argv) else [])
