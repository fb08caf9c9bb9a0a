"""Stories, influence and portals as text, drawings and pages."""
