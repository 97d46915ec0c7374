export interface OpenBrowser {
  close(): Promise<void>
}

export function openBrowser(url: string): OpenBrowser
