// Numbers of single rows, formatted as Python formats those of the summary.

export function count(value: number): string {
  return value.toLocaleString("en");
}

export function score(value: number): string {
  return value.toFixed(3);
}

export function seconds(value: number): string {
  if (value < 1e-3) return `${(value * 1e6).toFixed(0)} us`;
  if (value < 1e-2) return `${(value * 1e3).toFixed(1)} ms`;
  if (value < 0.9995) return `${(value * 1e3).toFixed(0)} ms`;
  if (value < 99.95) return `${value.toFixed(1)} s`;
  return `${Math.floor(value / 60)} min ${String(Math.round(value) % 60).padStart(2, "0")} s`;
}
