"""Serves the tools over the Model Context Protocol, in all revisions that the official SDK supports."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as types
from jsonschema import Draft202012Validator
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from periplus.errors import PeriplusError
from periplus.settings import VERSION
from periplus.ui.users import Role
from periplus.values import JsonObject
from periplus_agents.answers import CELL_CHARS, NOTICE, Arguments, ServedCollections, Tool, strip_invisible
from periplus_agents.tools import answer_call, tools_of

MOST_REQUESTS = 4  # requests answered at a time, each with its own database connection
INSTRUCTIONS = (
    """\
Periplus charts parts of the web and keeps them as collections. These tools read the collections of this machine;
{what}. `collections` lists them, `search` finds pages, `page` reads a page.
"""
    + NOTICE
)
_READS = "they send no web requests and change nothing"
_CRAWLS = "all except `crawl`, which fetches pages within a budget, send no web requests and change nothing"
_log = logging.getLogger(__name__)


def _describe_tool(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.sentence,
        input_schema=tool.arguments,
        output_schema=tool.result,
        annotations=types.ToolAnnotations(
            read_only_hint=tool.reads,
            destructive_hint=False,
            idempotent_hint=tool.reads,
            open_world_hint=not tool.reads,
        ),
    )


def wrong_argument(tools: Mapping[str, Tool], name: str, arguments: Arguments) -> str:
    """An error message for the arguments of a tool, or ""."""
    if name not in tools:
        return f"there is no tool {name!r}: choose among {', '.join(tools)}"
    error = next(iter(Draft202012Validator(tools[name].arguments).iter_errors(arguments)), None)
    return f"{'.'.join(map(str, error.path)) or name}: {error.message[:300]}" if error else ""


def result_of(
    served: ServedCollections, name: str, arguments: Arguments, *, may_crawl: bool = True
) -> types.CallToolResult:
    """The answer of a tool, or an error message that the model can act on."""
    tools = tools_of(served, may_crawl=may_crawl)
    try:
        if wrong := wrong_argument(tools, name, arguments):
            return _refusal(wrong)
        answer = answer_call(served, name, arguments, may_crawl=may_crawl)
    except PeriplusError as error:
        return _refusal(str(error))
    structure = answer.structure() if tools[name].result is not None else None
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=answer.text())], structured_content=structure
    )


def _refusal(why: str) -> types.CallToolResult:
    """An error message as JSON, since it may contain crawled text: a rule of robots.txt or an address."""
    text = json.dumps({"notice": NOTICE, "refused": strip_invisible(why)[:CELL_CHARS]}, ensure_ascii=False)
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)


def _may_crawl(request: Any) -> bool:
    """Whether the client may fetch pages. Without an HTTP request the client is the user of this process, who may."""
    return request is None or bool(request.scope["periplus"]["role"].allows(Role.WORK))


def server_of(served: ServedCollections) -> Server[JsonObject]:
    """A server that offers the tools over these collections, on any transport."""
    limiter = anyio.CapacityLimiter(MOST_REQUESTS)

    async def list_tools(
        context: ServerRequestContext[JsonObject], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        tools = tools_of(served, may_crawl=_may_crawl(context.request))
        return types.ListToolsResult(tools=[_describe_tool(tool) for tool in tools.values()])

    async def call_tool(
        context: ServerRequestContext[JsonObject], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        _log.info("tool %s", params.name)
        answer = partial(result_of, served, params.name, params.arguments or {}, may_crawl=_may_crawl(context.request))
        return await anyio.to_thread.run_sync(answer, limiter=limiter)

    about = INSTRUCTIONS.format(what=_READS if served.budget is None else _CRAWLS)
    return Server(
        "periplus", version=VERSION, title="Periplus", instructions=about,
        on_list_tools=list_tools, on_call_tool=call_tool,
    )  # fmt: skip


def serve_stdio(served: ServedCollections) -> None:
    """Serves on standard input and output until standard input is closed. All other output goes to stderr."""

    async def run() -> None:
        server = server_of(served)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    anyio.run(run)
