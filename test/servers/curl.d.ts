export function curlProgram(): string
