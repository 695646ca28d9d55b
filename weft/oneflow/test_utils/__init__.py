"""OneFlow's helpers for tests: `oneflow.test_utils.automated_test_util`, `oneflow.test_utils.test_util`."""
