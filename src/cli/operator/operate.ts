/** What every command that speaks to a service or a store begins and ends with. */
import { type BelfryClient, ServiceError } from '../../client/index.js'
import { failure } from '../../core/errors.js'
import { Output } from '../terminal/output.js'
import { givenTo } from './given-to.js'
import type { Flags } from './on-operator.js'
import { openOperator } from './operator.js'
import { formatOf, type Way, wayOf } from './operator-settings.js'

export interface Desk {
  readonly client: BelfryClient
  readonly out: Output
  readonly place: string
}

export async function operate(flags: Flags, work: (desk: Desk) => Promise<void>): Promise<void> {
  const given = await givenTo(flags)
  const way = wayOf(given)
  const out = new Output(formatOf(given))
  const { client, place, close } = await openOperator(way)
  try {
    await work({ client, out, place })
  } catch (error) {
    throw inWords(error, way)
  } finally {
    await close()
  }
}

function inWords(error: unknown, way: Way): unknown {
  if (!(error instanceof ServiceError) || error.code !== 'UNREACHABLE' || 'store' in way) return error
  const what = way.isDefault
    ? `no service answers on ${way.url}: start one with belfry serve, or say where to work with --url or --store`
    : `no service answers on ${way.url}: is it running, and reachable from here?`
  return failure('STORE_UNREACHABLE', what, { cause: error })
}
