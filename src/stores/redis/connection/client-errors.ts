/** What a client said of its connections. */
export interface ClientErrors {
  error?: unknown
  /** Told of each error while somebody wants to know. */
  tell?: ((error: unknown) => void) | undefined
}

const heardOf = new WeakMap<object, ClientErrors>()

/** Errors of a connection reach whoever sent the command; without a listener they would end the process. */
export function hearErrors(client: { on(event: 'error', listener: (error: unknown) => void): unknown }): ClientErrors {
  const known = heardOf.get(client)
  if (known !== undefined) return known
  const heard: ClientErrors = {}
  heardOf.set(client, heard)
  client.on('error', (error) => {
    heard.error = error
    heard.tell?.(error)
  })
  return heard
}
