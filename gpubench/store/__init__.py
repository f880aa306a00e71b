"""Files and where they live: runs, A/B measurements, journals, baselines and calibrations, read strictly."""
