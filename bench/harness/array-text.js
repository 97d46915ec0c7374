// @ts-check
/** Arrays as the text that Postgres reads: for thousands of values, several times as fast as leaving it to the driver. */

/** @param {readonly (number | string)[]} values */
export function numberArray(values) {
  return `{${values.join(',')}}`
}

/** @param {readonly string[]} values without control characters: JSON escapes the rest as Postgres does */
export function textArray(values) {
  return `{${values.map((value) => JSON.stringify(value)).join(',')}}`
}
