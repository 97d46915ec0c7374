import { z } from 'zod'
import { DEFAULTS } from '../../core/defaults.js'
import { digits } from './fields.js'

const MAX_LIMIT = 1_000

/** How many rows a page may scan for matches, so that no request scans a whole table. */
export const LOOK = 10_000

/** Query parameters of every list. They arrive as text, so the limit is converted. */
export const paging = {
  cursor: z.string().exactOptional().meta({ description: 'The `nextCursor` of the page before.' }),
  limit: digits(1, MAX_LIMIT)
    .default(DEFAULTS.list.limit)
    .meta({ description: `Default ${DEFAULTS.list.limit}, at most ${MAX_LIMIT}.` }),
}

/** A page of a list. `id` names its schema. */
export function listOf<Item extends z.ZodType>(item: Item, id: string) {
  return z
    .strictObject({
      data: z.array(item),
      nextCursor: z.nullable(z.string()).meta({ description: 'Null on the last page.' }),
    })
    .meta({ id })
}
