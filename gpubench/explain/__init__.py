"""Why a row has its time: reasons, limits, the fitted model of products, and the drops of a curve."""
