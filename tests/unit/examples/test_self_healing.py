"""The example of self-healing pipelines, and the page that shows it."""

from examples.flights.place import CHECKOUT


def test_the_page_shows_the_model_of_the_example_as_it_is() -> None:
    model = CHECKOUT / "examples" / "self_healing" / "models" / "orders.sql"
    page = CHECKOUT / "docs" / "how-to" / "self_healing_models.md"
    assert f"```sql\n{model.read_text(encoding='utf-8')}```" in page.read_text(encoding="utf-8")
