// @ts-check
/** Array literals of Postgres: for thousands of values, several times as fast as the driver's own conversion. */

/** @param {readonly (number | string)[]} values */
export function numberArray(values) {
  return `{${values.join(',')}}`
}

/** @param {readonly string[]} values Without control characters, which JSON escapes differently from Postgres. */
export function textArray(values) {
  return `{${values.map((value) => JSON.stringify(value)).join(',')}}`
}
