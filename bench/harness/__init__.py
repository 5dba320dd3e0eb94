"""What every row of the benchmarks shares: the program under test, the clock, baselines, results."""
