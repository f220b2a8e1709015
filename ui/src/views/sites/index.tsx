export default function Sites({ site }: { site: string | null }) {
    return <h1>Sites {site}</h1>;
}
