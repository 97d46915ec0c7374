/** Converts the service's field errors to text that names the fields of the user's file or flags, not JSON pointers. */
import type { ServiceError } from '../../client/index.js'
import { nearest } from '../../core/names/nearest.js'

const FIELDS = [
  ...['cron', 'every', 'at', 'timezone', 'dst', 'startsAt', 'endsAt', 'job', 'to', 'toOptions', 'payload', 'overlap'],
  ...['missed', 'backlog', 'deadline', 'jitter', 'times', 'priority', 'keep', 'onFinish'],
]

/** One line for each field; undefined if the error concerns no field. */
export function fieldErrorText({ problem }: ServiceError): string | undefined {
  const errors = problem.errors?.filter(({ pointer }) => pointer.startsWith('/')) ?? []
  if (errors.length === 0) return undefined
  return errors
    .map(({ pointer, message }) => `${fieldName(pointer)}: ${message}${suggestion(pointer, message)}`)
    .join('\n  ')
}

/** "/schedules/shop~1digest/cron" becomes `"shop/digest": cron`. */
function fieldName(pointer: string): string {
  const [first, ...rest] = partsOf(pointer)
  if (first !== 'schedules' || rest.length === 0) return [first, ...rest].join('.')
  const [id, ...field] = rest
  return field.length === 0 ? JSON.stringify(id) : `${JSON.stringify(id)}: ${field.join('.')}`
}

function suggestion(pointer: string, message: string): string {
  const parts = partsOf(pointer)
  const isField = parts.length === (parts[0] === 'schedules' ? 3 : 1)
  const meant = isField && message === 'there is no such field' ? nearest(parts.at(-1) ?? '', FIELDS) : undefined
  return meant === undefined ? '' : `; did you mean ${meant}?`
}

function partsOf(pointer: string): string[] {
  return pointer
    .slice(1)
    .split('/')
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
}
