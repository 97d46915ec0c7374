/** What every command that speaks to a service or a store begins and ends with. */
import { type BelfryClient, ServiceError } from '../../client/index.js'
import { errorRecord, failure } from '../../core/errors.js'
import { formatOf, type Way, wayOf } from '../settings/operator-settings.js'
import { givenTo } from '../settings/settings-given-to.js'
import { Output } from '../terminal/output.js'
import { fieldWords } from './field-words.js'
import type { Flags } from './on-operator.js'
import { openOperator } from './operator.js'

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
  if (!(error instanceof ServiceError)) return error
  const detail = fieldWords(error)
  if (detail !== undefined) return new ServiceError({ ...error.problem, detail }, { cause: error })
  if (error.code !== 'UNREACHABLE' || 'store' in way) return error
  const what = way.isDefault
    ? `no service answers on ${way.url}: start one with belfry serve, or say where to work with --url or --store`
    : `no service answers on ${way.url}: is it running, and reachable from here?${reasonOf(error)}`
  return failure('STORE_UNREACHABLE', what, { cause: error })
}

/** What the network said, where it said something: fetch itself has one sentence for everything. */
function reasonOf({ cause }: ServiceError): string {
  const { cause: inner } = cause instanceof Error ? cause : {}
  const { code = '', message } = errorRecord(inner)
  // OpenSSL's own words are addresses and lines of its source.
  const words = code.startsWith('ERR_SSL_') ? code : message
  return inner instanceof Error && words !== '' ? ` (${words})` : ''
}
