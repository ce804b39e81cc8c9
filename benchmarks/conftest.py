import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="fewer rounds")


@pytest.fixture
def quick(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--quick"))
