"""The demo: kill a pipeline in every bad moment, then prove that nothing was lost or doubled.

`script` says what happens as a list of values, `story` plays it; `run` and `folder` are the
edges to processes and files; `tally` and `verdict` are pure; `count` is a second opinion.
"""
