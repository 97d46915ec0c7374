/** Arrays as the text that the server reads: for thousands of values, several times as fast as leaving it to the driver. */
export function numberArray(values: readonly (number | string | null | undefined)[]): string {
  let text = ''
  for (const value of values) text += value === null || value === undefined ? ',NULL' : `,${value}`
  return `{${text.slice(1)}}`
}

/** For a column next to others that has no value in most rows: where it has none at all, it is left empty. */
export function sparseArray(values: readonly (number | string | null | undefined)[]): string {
  return values.every((value) => value === null || value === undefined) ? '{}' : numberArray(values)
}

const SPECIAL = /["\\]/

export function textArray(values: readonly (string | null | undefined)[]): string {
  let text = ''
  for (const value of values) {
    if (value === null || value === undefined) text += ',NULL'
    else text += `,"${SPECIAL.test(value) ? value.replaceAll(/["\\]/g, '\\$&') : value}"`
  }
  return `{${text.slice(1)}}`
}
