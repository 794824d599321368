# One tool of the made-up company: every value follows from its number, so that each run sees the same data.
MANY, ACTION = "@MANY@", "@ACTION@"

CITIES = ["Hamburg", "Berlin", "Vienna", "Zurich", "Cologne", "Leipzig", "Graz"]
FIRST = ["Ada", "Ben", "Cleo", "Dana", "Emil", "Fay", "Gus", "Hana", "Ivo", "Jana", "Kurt"]
LAST = ["Adler", "Brandt", "Conrad", "Dietz", "Engel", "Fuchs", "Graf"]
CATEGORIES = ["kitchen", "garden", "office", "toys", "sports"]


def date(number):
    return f"2026-{number * 5 % 12 + 1:02}-{number * 11 % 28 + 1:02}"


def customer(n):
    name = f"{FIRST[n % 11]} {LAST[n % 7]}"
    return {"id": f"c{n}", "name": name, "email": f"{name.lower().replace(' ', '.')}{n}@example.org", "city": CITIES[n % 7],
            "status": "active" if n % 5 else "dormant", "date": date(n), "newsletter": n % 3 == 0}


def product(n):
    return {"id": f"p{n}", "name": f"{CATEGORIES[n % 5].title()} item {n}", "category": CATEGORIES[n % 5],
            "price": round(4.9 + n * 3.35, 2), "stock": n * 17 % 40, "reorder_level": 12, "supplier": f"s{n % 6}",
            "status": "listed", "date": date(n)}


def order(n):
    units, number = n % 4 + 1, n * 11 % 30 + 1
    return {"id": f"o{n}", "customer_id": f"c{n * 7 % 48 + 1}", "product_id": f"p{number}", "units": units,
            "total": round(units * product(number)["price"], 2), "status": ["open", "paid", "shipped", "returned"][n % 4],
            "date": date(n), "channel": "web" if n % 3 else "shop"}


def shipment(n):
    return {"id": f"h{n}", "order_id": f"o{n * 2}", "carrier": ["Nord", "Express", "Kurier"][n % 3],
            "status": ["delivered", "late", "under_way", "delivered"][n % 4], "date": date(n * 2), "days": n * 5 % 9 + 1,
            "weight_kg": round(0.4 + n % 13 * 0.7, 1), "city": CITIES[n % 7]}


def other(n):
    return {"id": f"x{n}", "name": f"{MANY} {n}", "status": ["open", "done", "blocked"][n % 3], "owner_id": f"u{n % 9}",
            "amount": n * 37 % 500, "date": date(n)}


MAKERS = {"customers": (customer, 60), "products": (product, 30), "orders": (order, 160), "shipments": (shipment, 70)}


def records():
    make, count = MAKERS.get(MANY, (other, 50))
    return [make(n) for n in range(1, count + 1)]


def fits(record, wanted):
    after, before = wanted.get("from", ""), wanted.get("to", "9")
    return after <= record["date"] <= before and all(record.get(name, value) == value for name, value in wanted.items())


def run(**arguments) -> object:
    if ACTION in ("list", "count", "export", "search"):
        limit, offset = arguments.pop("limit", 50), arguments.pop("offset", 0)
        text = arguments.pop("text", "").lower()
        found = [record for record in records() if fits(record, arguments) and text in str(record).lower()]
        if ACTION == "count":
            return {"count": len(found)}
        return {"total": len(found), "items": found[offset:offset + limit]}
    if "id" not in arguments:
        return {"id": "new", **arguments}
    record = next((record for record in records() if record["id"] == arguments["id"]), None)
    if record is None:
        raise LookupError(f"There is no {arguments['id']} among the {MANY}")
    return record if ACTION == "get" else {"id": record["id"], "done": ACTION}
