"""What a run looks like: tables, terminal plots, exports. Pure functions of a Run; rich lives here and in the CLI."""
