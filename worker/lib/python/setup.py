"""pyproject.toml says the rest. Only what compiles needs libabdada: an sdist is made without it."""
import sys

from setuptools import setup

COMPILING = {"bdist_wheel", "build", "build_ext", "develop", "editable_wheel", "install"}

# cffi compiles for the stable interface of CPython: one wheel is for all versions from the first of requires-python on.
setup(cffi_modules=["abdada_build.py:ffi"] if COMPILING & set(sys.argv) else [],
      options={"bdist_wheel": {"py_limited_api": "cp39"}})
