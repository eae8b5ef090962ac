"""A page as HTML."""

from __future__ import annotations

from html import escape

from lognmf.report.page import Page


def render(page: Page) -> str:
    """The page as one HTML document."""
    return f"<!doctype html><title>{escape(page.title)}</title>"
