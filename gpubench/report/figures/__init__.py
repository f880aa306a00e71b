"""What the charts of a run show, as plain data: `charts` draws them as pictures, `figure_plot` in a terminal."""
