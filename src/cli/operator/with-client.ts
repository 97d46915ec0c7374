/** Runs a command with a client of a service or store, and explains the errors of both. */
import { type BelfryClient, ServiceError } from '../../client/index.js'
import { errorRecord, failure } from '../../core/errors.js'
import { settingSources } from '../settings/config-file.js'
import { formatOf, type Target, targetOf } from '../settings/operator-settings.js'
import { Output } from '../terminal/output.js'
import type { Flags } from './client-options.js'
import { fieldErrorText } from './field-errors.js'
import { openClient } from './open-client.js'

export interface CommandContext {
  readonly client: BelfryClient
  readonly out: Output
}

export async function withClient(flags: Flags, work: (context: CommandContext) => Promise<void>): Promise<void> {
  const sources = await settingSources(flags)
  const target = targetOf(sources)
  const out = new Output(formatOf(sources))
  const { client, close } = await openClient(target)
  try {
    await work({ client, out })
  } catch (error) {
    throw explained(error, target)
  } finally {
    await close()
  }
}

function explained(error: unknown, target: Target): unknown {
  if (!(error instanceof ServiceError)) return error
  const detail = fieldErrorText(error)
  if (detail !== undefined) return new ServiceError({ ...error.problem, detail }, { cause: error })
  if (error.code !== 'UNREACHABLE' || 'store' in target) return error
  const what = target.isDefault
    ? `no service answers on ${target.url}: start one with belfry serve, or choose one with --url or --store`
    : `no service answers on ${target.url}: is it running, and reachable from here?${reasonOf(error)}`
  return failure('STORE_UNREACHABLE', what, { cause: error })
}

/** The network's own error, which fetch hides in its cause. */
function reasonOf({ cause }: ServiceError): string {
  const { cause: inner } = cause instanceof Error ? cause : {}
  const { code = '', message } = errorRecord(inner)
  // An OpenSSL message names lines of OpenSSL's source; the error code tells the user more.
  const reason = code.startsWith('ERR_SSL_') ? code : message
  return inner instanceof Error && reason !== '' ? ` (${reason})` : ''
}
