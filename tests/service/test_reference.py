"""Every route of the service is on the page of the reference that is made from its description."""

import re

from starlette.routing import Mount, Route

from manul.service.http.application import Application
from tests.markdown import ROOT
from tests.service.conftest import run

PAGE = (ROOT / "docs" / "reference" / "http.md").read_text()


@run
async def test_every_route_that_is_served_is_documented(service):
    async with service.running():
        routes = Application(service.engine, service.tokens).routes
    served = {
        f"{method} {each.path}" for each in routes if isinstance(each, Route) for method in each.methods - {"HEAD"}
    }
    assert len(served) > 15
    assert {route for route in served if f"`{route}`" not in PAGE} == set()
    assert all(isinstance(each, Route | Mount) for each in routes)


def test_every_body_that_is_named_is_described():
    assert set(re.findall(r"\]\(#(\w+)\)", PAGE)) <= {
        name.lower() for name in re.findall(r"^### (\w+)$", PAGE, re.MULTILINE)
    }
