/** Prefixes an error with the place of its value: parsers know what is wrong, but not which option it was. */
export function located<T>(where: string, parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    if (error instanceof Error && !error.message.startsWith(where)) error.message = `${where}: ${error.message}`
    throw error
  }
}
