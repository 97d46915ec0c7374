/** User name and password of a URL, decoded. */
export function urlCredentials(url: string): { readonly username?: string; readonly password?: string } {
  const { username, password } = new URL(url)
  return {
    ...(username === '' ? {} : { username: decodeURIComponent(username) }),
    ...(password === '' ? {} : { password: decodeURIComponent(password) }),
  }
}
