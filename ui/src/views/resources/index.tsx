export default function Resources({ query }: { query: Record<string, string> }) {
    return <h1>Resources {query['q']}</h1>;
}
