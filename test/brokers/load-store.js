// @ts-check
import { postgres } from '../../dist/stores/postgres/index.js'
import { sqlite } from '../../dist/stores/sqlite/index.js'

/** @typedef {{ readonly file: string } | { readonly url: string, readonly schema: string }} LoadStore a SQLite file, or a database of Postgres */

/** @param {LoadStore} store */
export function openLoadStore(store) {
  return 'url' in store ? postgres({ ...store, migrate: true }) : sqlite({ path: store.file })
}
