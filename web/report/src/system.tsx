import type { Head } from "./data";

const COLOURS = 8;

/** The colour of a system, the same in every table and chart. */
export function colour(head: Head, system: string): string {
  return `var(--s${Math.max(0, head.systems.indexOf(system)) % COLOURS})`;
}

export function System({ head, name }: { head: Head; name: string }) {
  return (
    <span class="system">
      <i class="dot" style={{ background: colour(head, name) }} />
      <span class="name">{name}</span>
    </span>
  );
}
