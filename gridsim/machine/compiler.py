"""Compilation with numba: each function is compiled once, as a part that callers link and optimise.

By default, numba optimises and generates code for each function, and again for each caller. This takes three to four
times longer for nodes and for Slurm. This module therefore replaces private classes and methods of numba during the
compilation of a loop. `setup.cfg` has an upper bound on numba for this reason. If numba's internals differ
(`_is_known`), each loop is compiled in the default way. The module can be removed once numba compiles a chain of
functions without repeating the optimisation of callees, or once the first default compilation of all loops takes less
than 30 s.

numba's cache depends on the source file of a single function, but a loop contains functions of other files. The cache
folder therefore depends on the content of all sources (`gridsim.machine.njit.folder`).
"""

from __future__ import annotations

import functools
import gc
import hashlib
import importlib.util
import inspect
import itertools
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import llvmlite
import numba
import numpy as np
from llvmlite import binding
from numba.core import event, types
from numba.core.caching import IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.environment import lookup_environment
from numba.core.registry import cpu_target
from numba.core.targetconfig import ConfigStack, TargetConfig
from numba.extending import overload

from gridsim.files import distrust, warn

if sys.platform != "win32":
    import fcntl


_OPTIONS: Any = numba.config


def make(function: Callable[..., Any], folder: str, options: dict[str, Any]) -> Any:
    """Return numba's dispatcher of a loop.

    Parameters
    ----------
    folder : str
        Folder of the cache; empty for no cache.
    options : dict
        Compiler options of this loop.
    """
    decorate: Any = functools.partial(numba.njit, no_cfunc_wrapper=True, **options)  # no loop is called from C
    before = _OPTIONS.CACHE_DIR
    try:
        _OPTIONS.CACHE_DIR = folder
        made: Any = decorate(cache=bool(folder))(function)
    except RuntimeError:  # no writable folder, or no source file of the loop
        folder, made = "", decorate(cache=False)(function)
    finally:
        _OPTIONS.CACHE_DIR = before
    if hasattr(made, "get_call_template"):
        _for_any_value(made)
    if folder and hasattr(made, "compile"):
        _by_one(made, Path(folder, f"{function.__module__}.{function.__qualname__}.lock"))
    return made


def make_verb(function: Any, options: dict[str, Any]) -> None:
    """Let loops call a verb: the class of its first argument, a named tuple, selects the implementation.

    Python calls the implementations directly, so that they are compiled without wrappers for Python and C.
    """
    how: Any = {**options, _NO_ENTRY: True, "no_cfunc_wrapper": True}
    inline = how.pop("inline", "never")

    @overload(function, strict=False, inline=inline, jit_options=how)
    def implementation(machine: Any, *_: Any) -> Any:
        is_named = isinstance(machine, types.BaseNamedTuple)
        return function.dispatch(machine.instance_class) if is_named else None


def _for_any_value(made: Any) -> None:
    """Compile a loop for any number instead of for each literal number.

    By default, the compiler creates a version for each literal argument, and one more for variables.
    """
    template: Any = made.get_call_template
    plain: Any = types.unliteral

    def template_of_types(args: Any, keywords: Any) -> Any:
        return template(tuple(map(plain, args)), {name: plain(kind) for name, kind in dict(keywords).items()})

    made.get_call_template = template_of_types


def _by_one(made: Any, lock: Path) -> None:
    """Load the loop from the cache, or compile it under a file lock.

    The call graph of loops has no cycles, so that processes cannot wait for each other. A loop that is compiled for
    another loop is a part (`_Part`). Python cannot call a part: it has a separate cache key and is compiled again if
    Python calls it.
    """
    _check_files(made._cache)
    make, add, key, options = made.compile, made.add_overload, made._cache._index_key, made.targetoptions

    def compile_or_take(signature: Any) -> Any:
        with global_compiler_lock:  # before the file lock: a compiling thread holds it and needs files
            load_target()
            with _compiling as is_part, _held(lock), _without_entry(options, is_part):
                if not is_part and isinstance(signature, tuple) and _is_part(made.overloads.get(signature)):
                    del made.overloads[signature]
                return make(signature)

    def add_overload(compiled: Any) -> None:
        if _is_part(compiled):
            made.overloads[tuple(compiled.signature.args)] = compiled
        else:
            add(compiled)

    def index_key(signature: Any, codegen: Any) -> Any:
        return (*key(signature, codegen), options[_NO_ENTRY])

    options[_NO_ENTRY] = False
    made.compile, made.add_overload, made._cache._index_key = compile_or_take, add_overload, index_key


def _check_files(cache: Any) -> None:
    """Read only complete cache files of this user, and continue if the cache is not writable."""
    files, save = cache._cache_file, cache.save_overload
    source = Path(inspect.getfile(cache._py_func))
    cache._cache_file = _CheckedFiles(files._cache_path, cache._impl.filename_base, _content_of(source))

    def save_overload(signature: Any, compiled: Any) -> None:
        with suppress(OSError):  # disk full: the next process compiles it again
            save(signature, compiled)

    cache.save_overload = save_overload


@functools.cache
def _content_of(source: Path) -> str:
    return hashlib.blake2b(source.read_bytes()).hexdigest()


_FILES: Any = IndexDataCacheFile


class _CheckedFiles(_FILES):  # type: ignore[misc]
    """Index and data of a loop's cache, with checksums that include the compiler's version and the loop's source.

    A file is never unpickled if it is damaged, has another version, or is writable by other users. It is treated as
    missing, and the loop is compiled again.
    """

    def save(self, key: Any, data: Any) -> None:
        """Save compiled code: the data before the index that refers to it."""
        overloads = self._load_index()
        taken = {*overloads.values()}
        names = map(self._data_name, itertools.count(1))
        name = overloads.get(key) or next(name for name in names if name not in taken)
        self._save_data(name, data)
        self._save_index({**overloads, key: name})

    def _load_index(self) -> dict[Any, str]:
        return self._load(self._index_path) or {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        self._save(self._index_path, overloads)

    def _load_data(self, name: str) -> Any:
        return self._load(self._data_path(name))

    def _save_data(self, name: str, data: Any) -> None:
        self._save(self._data_path(name), data)

    def _load(self, path: str) -> Any:
        try:
            with Path(path).open("rb") as file:
                if reason := distrust(os.fstat(file.fileno())):
                    warn(f"{path} is not used: {reason}")
                    return None
                checksum, content = file.read(_CHECKSUM), file.read()
        except OSError:
            return None
        return pickle.loads(content) if checksum == self._checksum(content) else None

    def _save(self, path: str, value: Any) -> None:
        content = self._dump(value)
        with self._open_for_write(path) as file:
            Path(file.name).chmod(0o600)
            file.write(self._checksum(content) + content)

    def _checksum(self, content: bytes) -> bytes:
        versions = f"{numba.__version__} {llvmlite.__version__} {np.__version__} {self._source_stamp}"
        key = hashlib.blake2b(versions.encode()).digest()
        return hashlib.blake2b(content, key=key, digest_size=_CHECKSUM).digest()


_CHECKSUM = 32
"""Length of a checksum in bytes."""


_NO_ENTRY = "no_cpython_wrapper"


@contextmanager
def _without_entry(options: dict[str, bool], wanted: bool) -> Iterator[None]:
    """Compile without the wrapper that unpacks Python arguments, unless it is *wanted*."""
    before, options[_NO_ENTRY] = options[_NO_ENTRY], wanted
    try:
        yield
    finally:
        options[_NO_ENTRY] = before


class _Compiling:
    """Nesting depth of loops in the compiler, whose lock is held.

    The compiler creates millions of small objects and hardly any garbage; without garbage collection it takes an eighth
    less time. Its knowledge of parts is removed after the outermost loop, so that other compilations are unaffected.
    """

    depth = 0

    def __enter__(self) -> bool:
        """Return whether the current function is compiled as a part."""
        if self.depth == 0:
            with ExitStack() as until:
                if gc.isenabled():
                    gc.disable()
                    until.callback(gc.enable)
                self._makes_parts = until.enter_context(_parts())
                self._until = until.pop_all()
        self.depth += 1
        return self._makes_parts and self.depth > 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1
        if self.depth == 0:
            self._until.close()


_compiling = _Compiling()

_LIBRARY: Any = JITCodeLibrary


_LARGE = 100
"""Number of instructions from which a part is called instead of copied into its caller."""


class _Part(_LIBRARY):  # type: ignore[misc]
    """A compiler library that is optimised once and then linked unchanged into each caller.

    By default, the compiler optimises each loop with all its callees and generates machine code, before a caller links
    it and repeats both: for the loops of Slurm 26 of 49 CPU seconds, here 8. Libraries with an entry point for Python
    are finalised as usual; others remain parts until their code is requested.
    """

    _environments: tuple[Any, ...] = ()  # of cached loops: kept alive by this reference

    def get_pointer_to_function(self, name: str) -> int:
        """Return the address of a function; 0 if it has none, which needs no machine code."""
        if not self._finalized and name not in {function.name for function in self._final_module.functions}:
            return 0
        return int(super().get_pointer_to_function(name))

    @property
    def has_dynamic_globals(self) -> bool:
        if not self._finalized:
            self._dynamic_globals.clear()
            self._finalize_dynamic_globals()
        return bool(self._dynamic_globals)

    def add_linking_library(self, library: Any) -> None:
        if not isinstance(library, _Part):
            library._ensure_finalized()
        self._linking_libraries.append(library)

    def _all_parts(self) -> list[Any]:
        """Return all direct and indirect callees down to finalised libraries, callers before callees.

        A part that is linked in before it is complete would be missing for good.
        """
        found: dict[Any, None] = {}
        todo = [(self, iter(self._linking_libraries))]
        while todo:
            library, others = todo[-1]
            other = next(others, None)
            if other is None:
                found[library] = None
                todo.pop()
            elif other not in found:
                todo.append((other, iter(() if other._finalized else other._linking_libraries)))
        return list(reversed(found))[1:]

    def finalize(self) -> None:
        self._shared_module = None
        self._linking_libraries = self._all_parts()
        super().finalize()
        nowhere = [name for name in _called(self._final_module) if not self._codegen._engine.is_symbol_defined(name)]
        if nowhere:  # a call of address 0 would end the process
            raise RuntimeError(f"the compiled loop {self.name} calls what is not there: {', '.join(nowhere)}")
        for environment in _environments(self._final_module):
            self._codegen.set_env(environment.env_name, environment)

    def _optimize_functions(self, ll_module: Any) -> None:
        """Replace memory by variables, and remove unused values (addresses of Python objects, which are not cached).

        This removes seven eighths of the code for bundles of arrays. Callers do the remaining optimisation.
        """
        ll_module.data_layout = self._codegen._data_layout
        passes = binding.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.add_instruction_combine_pass()
        passes.add_dead_code_elimination_pass()
        passes.add_global_dead_code_eliminate_pass()
        passes.run(ll_module, self._codegen._pass_builder(opt=0, loop_vectorize=False, slp_vectorize=False))

    def _optimize_final_module(self) -> None:
        """Optimise once if arrays have no reference counts; by default the compiler optimises twice to remove counts.

        All linked functions become internal: unused arguments are removed, and large parts are called. By default they
        are copied into each call, which takes a fifth of the time for Slurm without faster code.
        """
        for function in list(self._final_module.functions):
            if not function.is_declaration and function.linkage == binding.Linkage.linkonce_odr:
                function.linkage = "internal"
                if sum(1 for block in function.blocks for _ in block.instructions) > _LARGE:
                    function.add_function_attribute("noinline")
        if any(function.name.startswith("NRT_") for function in self._final_module.functions):
            super()._optimize_final_module()
            return
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)

    def _get_module_for_linking(self) -> Any:
        if self._finalized:
            return super()._get_module_for_linking()
        if self._shared_module is None:
            module = self._final_module.clone()
            for function in list(module.functions):
                if not function.is_declaration and function.linkage == binding.Linkage.external:
                    function.linkage = "linkonce_odr"
            self._shared_module = module
        return self._shared_module

    def serialize_using_object_code(self) -> Any:
        if self._finalized:
            return super().serialize_using_object_code()
        module = self._final_module.clone()
        for library in self._all_parts():
            module.link_in(library._get_module_for_linking(), preserve=True)
        environments = tuple(found for found in _environments(module) if found.can_cache())
        return self.name, "part", (module.as_bitcode(), environments)

    @classmethod
    def _unserialize(cls, codegen: Any, state: tuple[str, str, Any]) -> Any:
        name, kind, data = state
        if kind != "part":
            return super()._unserialize(codegen, state)
        self = codegen.create_library(name)
        self.enable_object_caching()
        self._final_module, self._environments = binding.parse_bitcode(data[0]), data[1]
        return self


def _is_part(compiled: Any) -> bool:
    library = getattr(compiled, "library", None)
    return isinstance(library, _Part) and not library._finalized


def _environments(module: Any) -> list[Any]:
    """Return numba's environments of the functions in a module."""
    variables = [variable for variable in module.global_variables if not variable.is_declaration]
    names = [variable.name for variable in variables if variable.name.startswith("_ZN08NumbaEnv")]
    return [found for found in map(lookup_environment, names) if found is not None]


def _called(module: Any) -> list[str]:
    """Return the names of loops that a module calls but does not contain."""
    return [each.name for each in module.functions if each.is_declaration and each.name.startswith("_ZN")]


@contextmanager
def _parts() -> Iterator[bool]:
    """Build loops from parts until the outermost loop is compiled or loaded.

    Yield False if the compiler's internals are unknown or already patched; loops are then compiled in the default way.
    """
    codegen: Any = cpu_target.target_context.codegen()
    if not _is_known(codegen):
        yield False
        return
    set_env = codegen.set_env

    def set_where_defined(name: str, environment: Any) -> None:
        if codegen._engine.is_symbol_defined(name):  # a part has no address yet
            set_env(name, environment)

    options: Any = TargetConfig
    functions: Any = types.BaseFunction
    with (
        _instead(codegen, _library_class=_Part, set_env=set_where_defined),
        _instead(options, __eq__=_same_options, __hash__=_hash_of_options),
        _instead(functions, get_call_type=_resolved_once(functions.get_call_type)),
    ):
        yield True


def _resolved_once(resolve: Callable[..., Any]) -> Callable[..., Any]:
    """Cache the type resolution of numba functions.

    By default, each call tries all implementations, a dozen for indexing, and formats an error message per failure.
    """
    found: dict[tuple[Any, ...], Any] = {}

    def get_call_type(self: Any, context: Any, args: Any, keywords: Any) -> Any:
        options = ConfigStack.top_or_none()  # type: ignore[no-untyped-call]
        of = () if options is None else tuple(sorted((name, str(value)) for name, value in options._values.items()))
        key = (self, context, tuple(args), tuple(sorted(dict(keywords).items())), of)
        if key not in found:
            found[key] = resolve(self, context, args, keywords)
        return found[key]

    return get_call_type


def _is_known(codegen: Any) -> bool:
    known = all(hasattr(JITCodeLibrary, name) for name in vars(_Part) if name not in _OURS)
    known = known and hasattr(JITCodeLibrary, "_finalize_dynamic_globals") and hasattr(TargetConfig, "_values")
    known = known and "get_call_type" in vars(types.BaseFunction) and hasattr(codegen, "_module_pass_manager")
    known = known and hasattr(codegen, "_pass_builder") and hasattr(binding, "create_new_module_pass_manager")
    return known and hasattr(codegen, "set_env") and getattr(codegen, "_library_class", None) is JITCodeLibrary


_OURS = {"_environments", "_all_parts"}


@contextmanager
def _instead(owner: Any, **attributes: Any) -> Iterator[None]:
    """Replace attributes of an object or class temporarily."""
    before = {name: value for name, value in vars(owner).items() if name in attributes}
    try:
        for name, value in attributes.items():
            setattr(owner, name, value)
        yield
    finally:
        for name in attributes:
            if name in before:
                setattr(owner, name, before[name])
            else:
                delattr(owner, name)


_BY_ALL: Any = TargetConfig.__eq__


def _same_options(one: Any, other: Any) -> Any:
    """Return whether two sets of compiler options are equal, with defaults for options that are not set.

    The compiler's method compares all options, 110,000 times for the loops of Slurm (4 of 35 CPU seconds).
    """
    if type(one) is not type(other):
        return _BY_ALL(one, other)
    mine, theirs, known = one._values, other._values, type(one).options
    if mine == theirs:
        return True
    return all(
        mine.get(name, known[name].default) == theirs.get(name, known[name].default) for name in {**mine, **theirs}
    )


_HASH: Any = TargetConfig.__hash__
_HASHES: dict[type, int] = {}


def _hash_of_options(one: Any) -> int:
    """Return the compiler's hash, which depends on the names of options only: it is constant for a class."""
    kind = type(one)
    if kind not in _HASHES:
        _HASHES[kind] = _HASH(one)
    return _HASHES[kind]


_BLAS = "scipy.linalg.cython_blas"


@functools.cache
def load_target() -> None:
    """Import the modules that numba imports for its first loop.

    SciPy's linear algebra is not imported: it takes 0.13 s, and no loop here needs it. The compiler checks for it by an
    import. The check is answered without the import, which follows if a loop uses it.
    """
    if _BLAS not in sys.modules and importlib.util.find_spec("scipy") is not None:
        sys.modules[_BLAS] = ModuleType(_BLAS)
        try:
            importlib.import_module("numba.np.arraymath")
        finally:
            del sys.modules[_BLAS]
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()


@contextmanager
def _held(lock: Path) -> Iterator[None]:
    """Lock a file if the system supports it; otherwise a loop may be compiled twice."""
    with ExitStack() as until:
        with suppress(OSError):
            lock.parent.mkdir(parents=True, exist_ok=True)
            file = until.enter_context(lock.open("a"))
            if sys.platform != "win32":
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


class _Modules(event.Listener):
    """Report each module when loops of it are compiled, not loaded."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._within = say, 0

    def on_start(self, now: Any) -> None:
        self._within += 1
        if self._within == 1:  # its callees belong to it
            self._say(now.data["dispatcher"].py_func.__module__)

    def on_end(self, _: Any) -> None:
        self._within -= 1


def register(say: Callable[[str], None]) -> None:
    """Call *say* with the name of a module whenever a loop of it is compiled for Python."""
    event.register("numba:compile", _Modules(say))  # type: ignore[no-untyped-call]
