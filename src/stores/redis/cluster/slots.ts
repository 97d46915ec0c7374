export const SLOTS = 16_384

/** The slot of a hash tag, as Redis Cluster computes it: CRC-16 (XMODEM) modulo 16384. */
export function slotOf(tag: string): number {
  let crc = 0
  for (let at = 0; at < tag.length; at += 1) {
    crc ^= tag.charCodeAt(at) << 8
    for (let bit = 0; bit < 8; bit += 1)
      crc = (crc & 0x8000) !== 0 ? ((crc << 1) ^ 0x1021) & 0xffff : (crc << 1) & 0xffff
  }
  return crc % SLOTS
}

/** The slot of one of the store's keys, all of which have a hash tag. */
export function slotOfKey(key: string): number {
  return slotOf(/\{([^}]+)\}/.exec(key)?.[1] ?? key)
}
