"""Near misses of a solution."""

from akm_harbor.corpus.mutate import changed_files, mutants, sample, token_mutants, tokens


def lines(file, text):
    return {(m.change, m.now) for m in token_mutants(file, text.encode())}


def test_each_token_is_dropped_and_changed():
    assert lines("f.txt", "az group --name=x\n") == {
        ("drop", "group --name=x"), ("change", "azx group --name=x"),
        ("drop", "az --name=x"), ("change", "az groupx --name=x"),
        ("drop", "az group=x"), ("change", "az group --namex=x"),
        ("drop", "az group --name="), ("change", "az group --name=xx"),
    }  # fmt: skip


def test_numbers_switches_and_comments():
    assert ("change", "n: 10") in lines("f.yaml", "n: 9")
    assert ("change", "on: false") in lines("f.yaml", "on: true")
    assert lines("f.yaml", "# a comment\n") == set()
    assert all("# b" in now for _, now in lines("f.yaml", "a # b"))
    assert len(lines("f.md", "# a heading\n")) == 4
    assert token_mutants("f.bin", b"\xff\xfe") == []


def test_files_are_deleted_emptied_and_garbled():
    before, after = {"same": b"1", "old": b""}, {"same": b"1", "old": b"x", "new": b"y"}
    assert changed_files(before, after) == ["old", "new"]
    made = [(m.file, m.change) for m in mutants(before, after)]
    assert ("old", "empty-file") not in made, "that is where it began"
    assert ("new", "delete-file") in made
    assert ("new", "garble-file") in made
    assert ("same", "drop") not in made
    assert all(m.data not in (after[m.file], before.get(m.file)) for m in mutants(before, after) if m.data is not None)


def test_a_sample_is_even_and_repeatable():
    everything = mutants({}, {"f.txt": b"a b c d e f"})
    few = sample(everything, 4)
    assert len(few) == 4
    assert few == sample(everything, 4)
    assert sample(everything, None) == everything
    assert few[0] == everything[0]
    assert few[-1] != few[-2]


def test_tokens():
    assert tokens("Write `press.yaml`, port 80.") == {"Write", "press.yaml", "port", "80"}
