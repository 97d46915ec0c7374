/**
 * Any text as part of a statement, for where parameters cannot be used. Its alphabet holds nothing that could end it,
 * whatever the settings of the server say about backslashes.
 */
export function textLiteral(text: string): string {
  return `convert_from(decode('${Buffer.from(text, 'utf8').toString('base64')}', 'base64'), 'UTF8')`
}
