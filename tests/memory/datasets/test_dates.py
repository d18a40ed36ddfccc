"""The benchmarks' date spellings; what cannot be read stays empty."""

from datetime import UTC, datetime

import pytest

from akm_harbor.memory.datasets.dates import parse_date


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("2023/04/10 (Mon) 17:50", datetime(2023, 4, 10, 17, 50, tzinfo=UTC)),
        ("1:56 pm on 8 May, 2023", datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("March-15-2024", datetime(2024, 3, 15, tzinfo=UTC)),
        ("  2023/04/10  (Mon)  17:50 ", datetime(2023, 4, 10, 17, 50, tzinfo=UTC)),
        ("2024-02-29", datetime(2024, 2, 29, tzinfo=UTC)),
        ("2024-02-29T10:00:00+01:00", datetime(2024, 2, 29, 9, tzinfo=UTC)),
    ],
)
def test_published_spellings(raw, expected):
    assert parse_date(raw) == expected


@pytest.mark.parametrize("raw", [None, "", "yesterday", "2023/02/30 (Thu) 10:00", "13:56 pm on 8 May, 2023", "8 May"])
def test_anything_else_is_empty_and_never_today(raw):
    assert parse_date(raw) is None
