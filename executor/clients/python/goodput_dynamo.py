"""Forecasts of `goodput forecast serve` for the planner of NVIDIA Dynamo: one file, which needs nothing but Python.

The server itself is a prediction plugin of the planner, and needs no Python. In releases where the planner's own
predictor comes first (ai-dynamo up to 1.6.1 gives it the priority 0), the plugin's answer is passed over. This file
puts the forecast in the place of that predictor. Run the planner by

    python goodput_dynamo.py URL SERVICE [arguments of dynamo.planner]

or call `install(URL, SERVICE)` before the planner starts. Lengths of prompts and answers stay the planner's own.
"""

import http.client
import json
import math
import runpy
import sys
import urllib.error
import urllib.request


class GoodputPredictor:
    """Number of requests in the planner's next window, in the shape of the planner's `BasePredictor`.

    `url` is the HTTP address of the server, `service` the name of a service with a query that gives requests per second, and
    `interval_seconds` the length of the planner's window. While the server does not answer, the last prediction stays,
    and the load that the planner itself sees may raise it.
    """

    minimum_data_points = 1

    def __init__(self, url, service, interval_seconds, timeout_seconds=2.0):
        self.address = f"{url.rstrip('/')}/v1/forecast/{service}"
        self.interval_seconds = interval_seconds
        self.timeout_seconds = timeout_seconds
        self.data_buffer = []
        self._predicted = 0.0

    def reset_idle_skip(self):
        """Nothing is skipped: the server knows the load from Prometheus."""

    def add_data_point(self, value):
        """Notes the number of requests in the window that has passed."""
        self.data_buffer = [value if math.isfinite(value) else 0.0]

    def get_last_value(self):
        """Number of requests in the window that has passed."""
        return self.data_buffer[-1] if self.data_buffer else 0.0

    def predict_next(self):
        """Number of requests for which there is to be room in the next window."""
        try:
            with urllib.request.urlopen(self.address, timeout=self.timeout_seconds) as answer:
                room = json.load(answer)["room"]
        except urllib.error.HTTPError as refusal:
            if refusal.code == 404:
                raise LookupError(f"{self.address}: the server has no service of this name") from refusal
            room = None
        except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
            room = None
        if room is None:
            self._predicted = max(self._predicted, self.get_last_value())
        else:
            self._predicted = room * self.interval_seconds
        return self._predicted


def install(url, service):
    """Gives every planner of this process the forecasts of `service`."""
    from dynamo.planner.plugins.builtins.local_planner import BuiltinLoadPredict

    own = BuiltinLoadPredict.__init__

    def with_forecasts(self, config, capabilities):
        own(self, config, capabilities)
        self._num_req_predictor = GoodputPredictor(url, service, config.throughput_adjustment_interval_seconds)

    BuiltinLoadPredict.__init__ = with_forecasts


if __name__ == "__main__":
    install(*sys.argv[1:3])
    sys.argv[1:] = sys.argv[3:]
    runpy.run_module("dynamo.planner", run_name="__main__", alter_sys=True)
