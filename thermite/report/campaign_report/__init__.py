"""PURE. One campaign as a report to hand on: gather what happened, then write it for a reader.

`history` folds the events of one campaign into plain values, `text` writes them as text or
Markdown, `page` as one HTML file without a script or an address in it, `curve` draws the
champion's way and its times for that page, and `versus` puts two campaigns beside each other.
"""
