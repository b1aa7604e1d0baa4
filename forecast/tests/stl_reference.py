"""Makes forecast/src/models/mstl/stl_reference.csv: pip install statsmodels==0.15.0; python forecast/tests/stl_reference.py > forecast/src/models/mstl/stl_reference.csv"""
import numpy as np
from statsmodels.tsa.seasonal import STL

t = np.arange(113)
y = np.round(50 + 0.2 * t + (10 + 0.05 * t) * np.sin(2 * np.pi * t / 12) + 3 * np.cos(t * t * 0.7) + 8 * (t > 70), 6)
plain = STL(y, period=12, seasonal=7).fit()
jump = STL(y, period=12, seasonal=7, seasonal_jump=1, trend_jump=3, low_pass_jump=2).fit()
print("y,season,trend,season_jumping,trend_jumping")
for row in zip(y, plain.seasonal, plain.trend, jump.seasonal, jump.trend):
    print(",".join(repr(float(cell)) for cell in row))
