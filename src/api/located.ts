/** Says in an error of the time maths where the value stood: that knows what is wrong, but not whose it is. */
export function located<T>(where: string, parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    if (error instanceof Error && !error.message.startsWith(where)) error.message = `${where}: ${error.message}`
    throw error
  }
}
