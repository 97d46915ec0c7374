/**
 * A delay below `spreadMs`, by a hash of schedule and tick. Every instance computes the same delay for the same tick, so a
 * preview can show it.
 */
export function jitterMs(spreadMs: number, schedule: string, tick: number): number {
  return spreadMs === 0 ? 0 : Math.floor(unitHash(`${schedule}@${tick}`) * spreadMs)
}

/** A number in [0, 1) from text: FNV-1a with a final avalanche, because neighbouring ticks differ in a few bits only. */
export function unitHash(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0) / 0x1_0000_0000
}
