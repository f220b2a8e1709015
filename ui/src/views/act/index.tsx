export default function Placeholder(_props: { query: Record<string, string> }) {
  return <h1>act</h1>;
}
