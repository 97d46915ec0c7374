// @ts-check
/** Stores by what a worker is told of them. */
import { sqlite } from '../../dist/stores/sqlite/index.js'

/**
 * @typedef {{ name: 'sqlite', path: string }} StoreKind
 * @param {StoreKind} kind
 */
export async function openStore(kind) {
  return sqlite({ path: kind.path })
}
