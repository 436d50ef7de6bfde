"""Mutations of what checks data and files, of models, estimators and the command."""

from __future__ import annotations

from .mutant import Mutant

MUTANTS = [
    # ---- _base/archive.py ---------------------------------------------------------------------
    Mutant("_base/archive.py", "a bomb is expanded",
           "if total > most:", "if False:", "test_hostile_files.py", only="proportion"),
    Mutant("_base/archive.py", "a header is believed",
           "if size != left:", "if False:", "test_hostile_files.py", only="claims_more"),
    Mutant("_base/archive.py", "compressed models",
           "if stored and any(", "if False and any(", "test_hostile_files.py",
           only="compressed_parts"),
    # ---- _base/files.py -----------------------------------------------------------------------
    Mutant("_base/files.py", "standard error is there",
           "sys.stderr is not None and", "", "test_hostile_files.py", only="nobody_watches"),
    # ---- _base/weights.py ---------------------------------------------------------------------
    Mutant("_base/weights.py", "weights of 1e-320",
           "if np.count_nonzero(weights > LEAST) < n:", "if False:", "test_extremes.py",
           only="no_sum_can_show"),
    # ---- cli/__init__.py ----------------------------------------------------------------------
    Mutant("cli/__init__.py", "a traceback",
           "    except Exception as error:\n", "    except ZeroDivisionError.__class__ as error:\n",
           "test_hostile_files.py", only="nobody_expected"),
    # ---- data/check.py ------------------------------------------------------------------------
    Mutant("data/check.py", "index arrays are believed",
           "return arrays is not None and matrix.within(*arrays[1:], _minor(A))",
           "return arrays is not None", "test_memory_safety.py", only="own_format"),
    # ---- data/mapped/reader.py ----------------------------------------------------------------
    Mutant("data/mapped/reader.py", "checksums of labels are not compared",
           "if zlib.crc32(_raw(out)) != file.crc32:", "if False:", "test_on_disk.py"),
    Mutant("data/mapped/reader.py", "files that were cut",
           "if size != expected:", "if False:", "test_on_disk.py"),
    # ---- data/spectra.py ----------------------------------------------------------------------
    Mutant("data/spectra.py", "an indefinite Q",
           "    _check_semidefinite(Q)\n", "", "test_own_checked.py", only="indefinite"),
    # ---- datasets/__init__.py -----------------------------------------------------------------
    Mutant("datasets/__init__.py", "a stray index",
           "d <= WIDE * X.nnz + WIDE_IN_ANY_CASE:", "True:", "test_hostile_files.py",
           only="stray_index"),
    # ---- datasets/cache.py --------------------------------------------------------------------
    Mutant("datasets/cache.py", "the time of a source",
           '"mtime_ns": stat.st_mtime_ns', '"mtime_ns": 0', "test_hostile_files.py",
           only="keeps_its_size"),
    Mutant("datasets/cache.py", "any arrays",
           'if set(header["arrays"]) != set(ARRAYS):', "if False:", "test_hostile_files.py",
           only="cache_header",
           why="what is missing is a KeyError a line later, and what is more is never read"),
    # ---- datasets/libsvm.py -------------------------------------------------------------------
    Mutant("datasets/libsvm.py", "lines without end",
           "if waiting > LINE:", "if False:", "test_hostile_files.py", only="without_end"),
    Mutant("datasets/libsvm.py", "NUL is text",
           'if b"\\0" in got:', "if False:", "test_hostile_files.py", only="nul_is_no_text"),
    Mutant("datasets/libsvm.py", "a text bomb",
           "if below is not None and expanded >", "if False and expanded >",
           "test_hostile_files.py", only="proportion"),
    # ---- estimators/classifier.py -------------------------------------------------------------
    Mutant("estimators/classifier.py", "a fold with two classes",
           "if base is not None and base.K > 1:", "if False:", "test_outputs_everyday.py",
           only="two_of_three"),
    Mutant("estimators/classifier.py", "any number of classes",
           "if len(classes) > 2:\n            memory", "if False:\n            memory",
           "test_room.py", only="refused"),
    # ---- estimators/interrupted.py ------------------------------------------------------------
    Mutant("estimators/interrupted.py", "the other classes are solved",
           "        if pressed:\n            return\n", "", "test_ctrl_c.py",
           only="against_the_rest"),
    # ---- estimators/linear.py -----------------------------------------------------------------
    Mutant("estimators/linear.py", "Ctrl-C is swallowed",
           "            raise KeyboardInterrupt  # the", "            pass  # the",
           "test_certificate_edges.py", only="ctrl_c_in_fit"),
    # ---- estimators/search.py -----------------------------------------------------------------
    Mutant("estimators/search.py", "rows of a split are believed",
           "_check_rows(parts, X.shape[0])", "pass", "test_outputs_everyday.py", only="cannot_be"),
    Mutant("estimators/search.py", "Ctrl-C loses the search",
           "search_so_far(self, folds, plan, grid)", "pass", "test_ctrl_c.py",
           only="model_of_a_fold"),
    # ---- model/linear.py ----------------------------------------------------------------------
    Mutant("model/linear.py", "a model of one class",
           "count < 2\n        or ", "", "test_outputs_everyday.py", only="one_class"),
    Mutant("model/linear.py", "labels may be infinite",
           'if y.dtype.kind == "f" and not np.isfinite(y).all():', "if False:",
           "test_outputs_everyday.py", only="no_classes"),
    Mutant("model/linear.py", "any number of intercepts",
           " and len(b) == w.shape[1]", "", "test_weakened.py", only="intercept_for_each"),
    Mutant("model/linear.py", "no seal",
           "if hashlib.sha256(text.encode()).hexdigest() != ", "if False and '' != ",
           "test_model.py"),
    Mutant("model/linear.py", "digests are believed",
           "if digests != {name: _digest(part) for name, part in parts.items()}:", "if False:",
           "test_model.py"),
    Mutant("model/linear.py", "what is sealed is sound",
           "    _check(model)\n", "", "test_hostile_files.py", only="sealed_model"),
    # ---- _kernels/data/matrix.pyx -------------------------------------------------------------
    Mutant("_kernels/data/matrix.pyx", "decreasing indptr",
           "if end < begin or end > stored:\n                outside",
           "if end > stored:\n                outside", "test_memory_safety.py", only="own_format"),
]  # fmt: skip
