// What is to be looked at again: rows that changed, and strangers that may belong among them by now.

export class Due {
    private readonly rows = new Set<string>();
    private readonly strangers = new Set<string>();

    constructor(private readonly mostStrangers: number) {}

    row(id: string): void {
        this.rows.add(id);
    }

    /** False if there are too many to look at one by one: all of them are forgotten then. */
    stranger(id: string): boolean {
        this.strangers.add(id);
        if (this.strangers.size <= this.mostStrangers) return true;
        this.strangers.clear();
        return false;
    }

    /** Takes those out that are wanted now, so that what is heard from here on makes them due again. */
    take(isWanted: (id: string) => boolean, most: number): Set<string> {
        const taken = new Set<string>();
        for (const heard of [this.rows, this.strangers]) {
            for (const id of heard) {
                if (taken.size === most) return taken;
                if (!isWanted(id)) continue;
                taken.add(id);
                heard.delete(id);
            }
        }
        return taken;
    }

    /** For those that could not be looked at. */
    putBack(taken: Iterable<string>): void {
        for (const id of taken) this.row(id);
    }

    clear(): void {
        this.rows.clear();
        this.strangers.clear();
    }
}
