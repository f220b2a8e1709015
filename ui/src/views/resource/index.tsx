export default function Placeholder({ id }: { id: string; op: string | null; query: Record<string, string> }) {
  return <h1>{id}</h1>;
}
