"""One run, or a comparison, as one HTML file that needs no network and no server, and reads back as input."""
