from akm_harbor.canary.entries import decode


def test_the_fields_that_count() -> None:
    found = decode(
        '{"name":"a","type":"knowledge","toc":[{"level":1,"text":"H","line":3}],"xrefs":["b"],"generation":3,"x":1}'
    )
    assert found is not None
    assert found.toc is not None
    assert (found.toc[0].text, found.sources, found.generation) == ("H", ("b",), 3)


def test_older_documents_name_their_sources_otherwise() -> None:
    found = decode('{"name":"a","type":"memory","source_refs":["memory:b"]}')
    assert found is not None
    assert found.sources == ("memory:b",)


def test_one_odd_field_does_not_hide_the_asset() -> None:
    found = decode('{"name":"a","type":"memory","tags":["t",5],"generation":"7","description":4,"toc":{"a":1}}')
    assert found is not None
    assert (found.tags, found.generation, found.description, found.toc) == (("t",), None, None, None)


def test_what_is_no_document() -> None:
    assert decode("{") is None
    assert decode("[]") is None
    assert decode('{"name":"a"}') is None
    assert decode(b"\xff\xfe") is None
