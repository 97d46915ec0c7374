import { failure, quote } from '../errors.js'

/** Refuses unknown options, so that a misspelt one is not silently ignored. */
export function checkOptions(options: unknown, known: readonly string[], place: string | (() => string)): void {
  const where = () => (typeof place === 'string' ? place : place())
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw failure('OPTION_INVALID', `${where()}: options must be an object, not ${quote(options)}`)
  }
  const stranger = Object.keys(options).find((key) => !known.includes(key))
  if (stranger === undefined) return
  const close = known.find((key) => isClose(key.toLowerCase(), stranger.toLowerCase()))
  const hint = close === undefined ? `known are ${known.join(', ')}` : `did you mean "${close}"?`
  throw failure('OPTION_INVALID', `${where()}: ${quote(stranger)} is not an option; ${hint}`)
}

/** Whether one text becomes the other by changing, adding or dropping one letter, or by swapping two neighbours. */
function isClose(one: string, other: string): boolean {
  if (Math.abs(one.length - other.length) > 1) return false
  let start = 0
  while (start < one.length && one[start] === other[start]) start += 1
  const [restOne, restOther] = [one.slice(start), other.slice(start)]
  return (
    restOne.slice(1) === restOther.slice(1) ||
    restOne.slice(1) === restOther ||
    restOne === restOther.slice(1) ||
    (restOne[0] === restOther[1] && restOne[1] === restOther[0] && restOne.slice(2) === restOther.slice(2))
  )
}
